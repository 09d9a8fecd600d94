// Package doctor is cnictl doctor: the causes that the doctor knows, as a list and one by one.
// What they are is doctor/catalogue's.
package doctor
