"""Made-up requests, thousands of them, by the API's own description."""
