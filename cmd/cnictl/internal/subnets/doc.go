// Package subnets is cnictl subnets: a row per subnet, or the map of the /28s of one. What
// they say is daemon/fleet/subnets'; here it is read, listed and printed.
package subnets
