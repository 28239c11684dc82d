"""Ways to make a resource of a server of ours dearer or free while a load runs."""
