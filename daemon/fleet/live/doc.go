// Package live samples a fleet for as long as somebody is watching it: it follows the list
// of nodes, reads them as daemon/fleet/schedule plans, and puts the results into a store.
// Screens and watching commands get their data from it.
//
// Everything runs under one [Live.Run]; when that returns, no goroutine and no connection
// is left. The other methods may be called at any time from any goroutine, and only
// [Live.Detail] waits for a node.
package live
