"""The project's own task records: format, loader, criteria. What they mean is judged by the native scorer."""
