//go:build nightly

package branch_test

func init() { allWhileDeleted = true }
