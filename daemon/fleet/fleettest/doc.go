// Package fleettest serves nodes for tests of code that reads them: ours through the real
// introspection server from fixed views, and upstream's from recorded answers. Only tests import
// it.
package fleettest
