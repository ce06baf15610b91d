"""The ground floor: codes, errors, enums, state tables, completions, host threads. Knows no stream, task or device."""
