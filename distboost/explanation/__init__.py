"""Why a model gives a row its scores."""
