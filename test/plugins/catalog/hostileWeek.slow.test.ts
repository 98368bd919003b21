// A sample of the hostile week: the whole one is `npm run bench -- hostile-week`.
import { describe, expect, it } from "vitest"
import { hostileWeek } from "../../bench/hostileWeek.ts"
import { databaseKinds } from "../../support/databases.ts"

describe.each(databaseKinds)("a hostile week on %s", (database) => {
  it("honest listings stay correct and first-page through a hostile week", async () => {
    const days = await hostileWeek({ sellers: 24, hostile: 576, days: 2, database })
    expect(days).toEqual([
      { right: 24, first: 24, lost: [] },
      { right: 24, first: 24, lost: [] }
    ])
  }, 600_000)
})
