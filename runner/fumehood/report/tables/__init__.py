"""Tables as data, and their faces: text for people, CSV and Parquet for programs."""
