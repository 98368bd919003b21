// `npm run bench -- hostile-week [DECLARATIONS [SELLERS [DAYS]]]`: 50 honest sellers of six kinds and 2,000 hostile
// declarations of twelve kinds over seven simulated days. The bar: at the end of each day every honest listing is
// found, right, and on the first page for its own question.
import { hostileWeek } from "./hostileWeek.ts"

export const bench = async (): Promise<boolean> => {
  const [hostile = 2_000, sellers = 50, count = 7] = process.argv.slice(3).map(Number)
  const days = await hostileWeek({ sellers, hostile, days: count })
  for (const [day, { first, lost, right }] of days.entries()) {
    console.log(`day ${day + 1}: ${right} of ${sellers} right, ${first} on the first page for their own question`)
    for (const one of lost) console.log(`  ${one}`)
  }
  return days.every(({ first, right }) => first === sellers && right === sellers)
}
