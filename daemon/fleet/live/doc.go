// Package live samples a fleet for as long as somebody looks at it: it follows the list
// of nodes, reads them as daemon/fleet/schedule plans, and puts what it learns into a
// store. It gives screens and watching commands their data.
//
// All of it runs under one [Live.Run]; when that returns, no goroutine and no connection
// is left. The other methods may be called at any time from anywhere, and none but
// [Live.Detail] waits for a node.
package live
