"""Files and stores: publishing, retries, temporary folders."""
