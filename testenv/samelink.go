package testenv

// Two pods whose host links have the same name: links are named by 44 bits of a hash, so some
// millions of names contain two that agree. It takes 2^44 names to find one that agrees with
// a given one.
const (
	VictimNamespace, VictimName     = "shop", "p-2082b2a2674"
	AttackerNamespace, AttackerName = "evil", "p-f1a84dad8d9"
)
