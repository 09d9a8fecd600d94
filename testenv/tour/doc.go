// Package tour is the cluster that the pages for people show: thirty nodes over a
// quarter of an hour, as cnictl record would have written them. The same every time, and
// in the tree as docs/tour.cnirec, so that a reader can replay what he reads about.
//
// The pages' frames and outputs are made of that file by tests, which put them between
// markers ([Section]) and fail when a page is stale.
package tour
