// Package iam is the table of the AWS actions that our programs and AWS's network policy
// agent take: which feature takes each, and on what. The policies of deploy/iam are made from it, the doctor judges a role by
// it, and tests compare it with the calls of the code.
package iam
