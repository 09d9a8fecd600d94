// Package inventory lists what a fleet has, from the samples of its nodes and from Kubernetes: pods
// with the addresses that nodes hold for them, or why they have none; ENIs and their addresses;
// trunks and branch ENIs; subnets, how much of each is in use, by whom, and when it will run out;
// events; and causes of problems with the nodes that report them. It is pure.
package inventory
