"""Queue disciplines as data, and the test of their contract."""
