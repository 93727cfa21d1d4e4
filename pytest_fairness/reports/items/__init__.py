"""Items of the report document: functions that read their fields, and describe them in sentences and tables."""
