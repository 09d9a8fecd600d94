// Package doctor implements cnictl doctor and cnictl local doctor: it gathers evidence from
// nodes, a file, an archive or a recording, has doctor/causes examine it, and prints the
// report. It also lists the causes of doctor/causes/catalogue. It decides nothing itself.
package doctor
