"""What people read, kept under review."""
