// Package capacity is cnictl capacity: how many pods fit, on which instance type, with which
// settings. The computation is in the packages under capacity/.
package capacity
