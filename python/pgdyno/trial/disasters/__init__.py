"""What may befall a server right after its window, one module each; see `trial.after_window`."""
