"""Reports: statistics, tables, pictures and pages of finished runs. Reports read rows and traces only."""
