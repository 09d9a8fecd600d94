// Package agent implements the process inside a simulated node: process 1 of a network,
// mount, process, IPC and host-name namespace. It starts programs there, creates pod
// namespaces, and opens files and connections for the process outside.
//
// The agent is the calling program itself, started again: [Maybe], called first in main
// (by testenv.Main and testenv.Enter), turns such a process into an agent.
// [Start] and the methods of [Agent] are the outside end. The two communicate over a socket
// pair, with one short connection per request, so requests run in parallel.
//
// A node ends with its agent: the kernel kills everything in a process namespace
// whose first process is gone, and it kills the agent when the thread that started it
// ends. Nothing here is safe for production use.
package agent
