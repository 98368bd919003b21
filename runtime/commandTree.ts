// Every subcommand, each one file in `commands/`. Loading them all costs a second of processor time, which a command
// that a running process executes does not need: see `commandLine.ts`.
import { Command } from "effect/cli"
import { agent } from "./commands/agent.ts"
import { approvals } from "./commands/approvals.ts"
import { checkSeller } from "./commands/checkSeller.ts"
import { config } from "./commands/config.ts"
import { ledger } from "./commands/ledger.ts"
import { move } from "./commands/move.ts"
import { pay } from "./commands/pay.ts"
import { reasons } from "./commands/reasons.ts"
import { receipts } from "./commands/receipts.ts"
import { redteam } from "./commands/redteam.ts"
import { repair } from "./commands/repair.ts"
import { reset } from "./commands/reset.ts"
import { start, tools } from "./commands/start.ts"
import { operatorCommands } from "./operators.ts"
import { watch } from "./commands/watch.ts"
import { tollkeeper } from "./runCommands.ts"

export const commandTree = tollkeeper.pipe(
  Command.withSubcommands([
    start,
    pay,
    checkSeller,
    watch,
    tools,
    agent,
    approvals,
    ledger,
    receipts,
    reasons,
    redteam,
    ...operatorCommands,
    config,
    repair,
    move,
    reset
  ])
)
