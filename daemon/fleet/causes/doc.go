// Package causes sorts what nodes report by cause, for the doctor's screen and cnictl
// status alike. It is pure: it reads samples and makes no requests.
package causes
