"""Line searches and other small optimisation problems."""
