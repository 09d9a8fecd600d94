// Package fleettest serves nodes for the tests of those who read them: ours through
// the real introspection server from fixed views, and upstream's from recorded
// answers. It is imported from tests only.
package fleettest
