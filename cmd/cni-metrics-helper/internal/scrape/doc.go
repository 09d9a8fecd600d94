// Package scrape reads what the ipamd of every node counts, through the API server's
// pod proxy: the helper needs no direct connection to the nodes.
//
// A node is outside input. Each answer has a time limit and a size limit, redirects are
// not followed (the client would take the service account's token along), and of the
// text only the families that are wanted reach the parser. What goes wrong with one pod
// is a reason to skip that pod.
package scrape
