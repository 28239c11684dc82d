"""What a plan means on one server and one host: stages with their settings, trials in order."""
