"""Labels of people on judged answers, in the store."""
