"""The mathematics: exact constants, verdicts, their checker, certified sums, receptive fields. No torch in here."""
