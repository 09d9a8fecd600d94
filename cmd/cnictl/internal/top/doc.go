// Package top implements cnictl top: what each node does per minute.
package top
