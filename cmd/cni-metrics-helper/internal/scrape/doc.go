// Package scrape reads the metrics of every node's ipamd through the API server's pod proxy,
// so the helper needs no direct connection to the nodes.
//
// A node is untrusted input. Each response has a time limit and a size limit, redirects are
// not followed (the client would send the service account's token along), and only the wanted
// families of the text reach the parser. If anything goes wrong with a pod, that pod is
// skipped.
package scrape
