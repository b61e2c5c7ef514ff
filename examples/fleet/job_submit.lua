-- A job_submit plugin for Slurm: memory for each node by what jobs of the same user and name needed.
--
-- Put it into the directory of slurm.conf, with `JobSubmitPlugins=lua` there. The table comes from
-- `vellum recommend slurm --output /etc/slurm/vellum.csv` (a timer; docs/fleet.md).
--
-- Nothing is changed without a line to the user. A job that asks for memory by processor or GPU is left alone, and so
-- is every job when the table is missing, too old or broken.

local TABLE = "/etc/slurm/vellum.csv"
-- A job that asks for nothing gets what the table says.
local SET_WHAT_IS_NOT_ASKED = true
-- A job that asks for more than this many times what the table says gets what the table says; false: never.
local LOWER_ABOVE = 1.5
-- A job that asks for less gets what the table says; false: the user is only told.
local RAISE = false
-- For how long a table that was read is used, in seconds, and the most lines and MiB that make sense.
local AGE, LINES_MAX, MIB_MAX = 60, 1000000, 64 * 1024 * 1024

local rows, read_at = {}, nil

-- The rows of the table by user and name; none if it cannot be read, or any line is wrong.
local function read()
    local file = io.open(TABLE, "r")
    if not file then
        return {}
    end
    local found, count = {}, 0
    for line in file:lines() do
        count = count + 1
        local user, mib, jobs, name = line:match('^(%d+),(%d+),(%d+),"(.*)"$')
        if user and count <= LINES_MAX and tonumber(mib) > 0 and tonumber(mib) <= MIB_MAX then
            name = name:gsub('""', '"')
            found[user .. "," .. name] = { mib = tonumber(mib), jobs = tonumber(jobs) }
        elseif count > 1 or line ~= "user,mib_per_node,jobs,name" then
            file:close()
            slurm.log_error("vellum: line %d of %s is wrong; no job is changed", count, TABLE)
            return {}
        end
    end
    file:close()
    return found
end

local function of(user, name)
    local now = os.time()
    if not read_at or now < read_at or now - read_at >= AGE then
        rows, read_at = read(), now
    end
    return rows[string.format("%d,%s", user, name)]
end

local function advise(job, user)
    if not job.name then
        return
    end
    local row = of(user, job.name)
    if not row then
        return
    end
    local by_cpu, by_node = job.min_mem_per_cpu, job.min_mem_per_node
    if by_cpu or (job.tres_per_task or job.mem_per_tres) then
        return
    end
    local known = string.format("%d jobs of this name needed at most %d MiB on a node", row.jobs, row.mib)
    if not by_node then
        if SET_WHAT_IS_NOT_ASKED then
            job.min_mem_per_node = row.mib
            slurm.log_user("vellum: %s: --mem=%dM is set", known, row.mib)
        end
    elseif by_node == 0 then
        -- --mem=0: all of the node.
        return
    elseif by_node < row.mib then
        if RAISE then
            job.min_mem_per_node = row.mib
            slurm.log_user("vellum: %s: --mem=%dM is raised to %dM", known, by_node, row.mib)
        else
            slurm.log_user("vellum: %s: --mem=%dM may be too little", known, by_node)
        end
    elseif LOWER_ABOVE and by_node > row.mib * LOWER_ABOVE then
        job.min_mem_per_node = row.mib
        slurm.log_user("vellum: %s: --mem=%dM is lowered to %dM", known, by_node, row.mib)
    end
end

function slurm_job_submit(job_desc, part_list, submit_uid)
    -- A mistake here must not keep jobs out.
    local done, why = pcall(advise, job_desc, submit_uid)
    if not done then
        slurm.log_error("vellum: %s", tostring(why))
    end
    return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
    return slurm.SUCCESS
end

return slurm.SUCCESS
