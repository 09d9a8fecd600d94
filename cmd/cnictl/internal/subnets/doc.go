// Package subnets is cnictl subnets: a row per subnet, or the map of the /28s of one.
// Their content is from daemon/fleet/subnets; here it is read, listed and printed.
package subnets
