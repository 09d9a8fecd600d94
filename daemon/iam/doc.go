// Package iam is the table of AWS actions that our programs and AWS's network policy agent
// call: which feature calls each, and on what. The policies of deploy/iam are made from it, the
// doctor judges a role by it, and tests compare it with the calls in the code.
package iam
