// Package subnets implements cnictl subnets: a row per subnet, or a map of one subnet's /28s.
// daemon/fleet/inventory computes the content; this package reads, lists and prints.
package subnets
