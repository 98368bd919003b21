// `npm run faults`: breaks the place of a facilitator in one way after another, and checks readiness, the caller's
// answer and recovery: a payment made during the fault settles once. Afterwards the seller has received one price for
// each success. `--only PATTERN` selects faults by name.
// Ends with `N passed, N failed`; the exit code is 0 only if every fault passed.
import process from "node:process"
import { parseArgs } from "node:util"
import { tmpdir } from "node:os"
import { Place } from "./Place.ts"
import { diskReserveMb, type Fault, faults } from "./rows.ts"

const { values } = parseArgs({ options: { only: { type: "string", default: "" } } })
const chosen = faults.filter(({ name }) => new RegExp(values.only).test(name))

const excerpt = (text: string, wanted: RegExp): string => wanted.exec(text)?.[0].slice(0, 60) ?? text.slice(0, 60)

/** Plays one fault; returns its line of the table. */
const play = async (place: Place, fault: Fault): Promise<string> => {
  await place.bring(await place.pay())
  if (fault.isNewLedger === true) place.paid = 0
  const mend = await fault.breaks(place)
  let answer = "settles"
  let health: string
  const payment = await place.pay(fault.paymentSeconds)
  try {
    if (fault.caller === undefined) await place.bring(payment)
    else {
      await place.healthBecomes(fault.health)
      answer = JSON.stringify(await place.settle(payment).catch((error) => ({ error: String(error) })))
      if (!fault.caller.test(answer)) throw new Error(`the caller received ${answer}`)
      answer = excerpt(answer, fault.caller)
    }
    health = excerpt(await place.healthBecomes(fault.health), fault.health)
  } finally {
    await mend()
  }
  const mended = performance.now()
  await place.healthBecomes(/"http":200/)
  if (fault.caller !== undefined) await place.bring(payment)
  await place.bring(await place.pay())
  const received = await place.received()
  if (received !== BigInt(place.paid)) throw new Error(`${place.paid} successes, ${received} payments on the ledger`)
  const seconds = (from: number, to: number) => `${((to - from) / 1_000).toFixed(0)} s`
  const after = `healed in ${seconds(mended, performance.now())} by ${fault.heals}`
  return `${fault.name} | health ${health} | caller ${answer} | ${after}`
}

let [passed, failed] = [0, 0]
for (const kind of ["disk", "embedded", "postgres"] as const) {
  const own = chosen.filter(({ place }) => place === kind)
  if (own.length === 0) continue
  const set = kind === "disk" ? [`database.disk_reserve_mb=${diskReserveMb(tmpdir())}`] : []
  const place = await Place.open({ database: kind === "postgres" ? "postgres" : "embedded", set })
  try {
    for (const fault of own) {
      try {
        console.log(`ok    ${await play(place, fault)}`)
        passed += 1
      } catch (error) {
        console.log(`FAIL  ${fault.name}: ${String((error as Error).message).slice(0, 600)}`)
        failed += 1
      }
    }
  } finally {
    await place.close()
  }
}
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed === 0 && passed > 0 ? 0 : 1)
