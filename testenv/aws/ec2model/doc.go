// Package ec2model has the facts of EC2 that fakeaws, fleetsim and the simulation share: which
// addresses of a subnet can be given to an interface, and how many requests an account may make.
package ec2model
