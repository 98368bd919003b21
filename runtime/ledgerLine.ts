// The command line of `tollkeeper ledger`. It loads nothing of the facilitator: half the time and half the memory, for
// a process that users start for each of their tests.
import { Command } from "effect/cli"
import { ledger } from "./commands/ledger.ts"
import { runCommands, tollkeeper } from "./runCommands.ts"
import { version } from "./version.ts"

runCommands(Command.run(tollkeeper.pipe(Command.withSubcommands([ledger])), { version }), true)
