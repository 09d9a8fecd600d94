// Package top is cnictl top: what each node does per minute.
package top
