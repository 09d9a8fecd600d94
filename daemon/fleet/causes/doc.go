// Package causes groups what nodes report by cause, for the doctor's screen and cnictl status.
// It is pure: it reads samples and makes no requests.
package causes
