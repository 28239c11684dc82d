"""What is looked at before a trial's server stops, one module each; see `trial.after_window`."""
