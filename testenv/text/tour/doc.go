// Package tour generates the documentation's example cluster: thirty nodes over a quarter of
// an hour, as cnictl record would have written them. The recording is always the same. It is
// committed as docs/tour.cnirec, so that readers can replay it.
//
// Tests generate the pages' screens and outputs from that file, put them between markers
// ([Pages]) and fail when a page is stale.
package tour
