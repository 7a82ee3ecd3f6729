"""The families of scenarios: one module with templates and one YAML file with the world each."""
