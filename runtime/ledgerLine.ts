// The command line of `tollkeeper ledger`, which needs nothing of the facilitator and so loads nothing of it: half the
// time and half the memory of a process that somebody starts for each of their tests.
import { Command } from "effect/cli"
import { ledger } from "./commands/ledger.ts"
import { runCommands, tollkeeper } from "./runCommands.ts"
import { version } from "./version.ts"

runCommands(Command.run(tollkeeper.pipe(Command.withSubcommands([ledger])), { version }), true)
