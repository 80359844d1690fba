// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package program is the command line of the embedded API server.
//
//	apiserver [flags]                         serve until told to stop
//	apiserver [flags] exec -- COMMAND ARGS    serve while COMMAND runs, with KUBECONFIG set; exit as COMMAND does
//	apiserver check --data-dir DIR            tell whether a data folder is in order
//	apiserver repair --data-dir DIR --to NEW  save what can be saved of a damaged one to a new folder
//	apiserver controllers --only NAME,...     run Kubernetes' own controllers against --kubeconfig FILE
//
// # Being ready
//
// When the server answers, the program prints one line on standard output:
//
//	ready https://127.0.0.1:41237 kubeconfig /home/me/project/.wherry/kubeconfig
//
// or, with --ready-json, one JSON object on one line, for programs:
//
//	{"url":"https://127.0.0.1:41237","kubeconfig":"apiVersion: v1\n...","kubeconfigFile":"/home/me/.../kubeconfig"}
//
// Nothing else goes to standard output. kubeconfigFile is empty if no file was written, which is so with
// --storage memory --ready-json and no --kubeconfig.
//
// # Ending
//
// SIGINT, SIGTERM and SIGHUP stop it in good order within five seconds, also before it is ready, when it says what it
// still waited for; a second one ends it at once. So does the end of the program that started it, unless --detach is
// given: it is noticed within a second. SIGQUIT ends it without order and has it say where its goroutines are; under
// exec COMMAND gets that. With --exit-on-stdin-eof it stops when its standard input reaches its end. A parent that holds
// the other end of that pipe need do nothing: however it dies, the pipe closes.
//
// Exit status: 0 after an orderly stop, 1 if something was in the way (one line on standard error names it and the
// remedy), 2 if the command line makes no sense; exec hands on COMMAND's, 128+N if signal N ended it, 126 or 127 if it
// could not be run or found.
package program
