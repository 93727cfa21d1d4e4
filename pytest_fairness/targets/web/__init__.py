"""Code that all targets on web servers share: addresses, keys, the HTTP client, and the errors of servers."""
