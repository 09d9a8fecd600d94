// Package iam is the table of AWS actions that our programs and AWS's network policy agent
// call: which features call each action. The policies of deploy/iam are generated from it,
// the doctor checks a role against it, and tests compare it with the calls in the code.
package iam
