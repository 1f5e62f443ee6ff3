package api_test

// notYet are the documented statuses that nothing is answered with yet. One that is must leave this list.
var notYet = []string{"401", "403", "429"}
