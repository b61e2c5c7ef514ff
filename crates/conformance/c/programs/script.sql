create table t(id integer primary key, name text, value real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 80000)
insert into t select i, printf('name %d', i * 7919 % 10007), i * 0.5 from n;
create index by_name on t(name);
select count(*), count(distinct name), sum(value) from t;
select name, sum(value) s from t group by name order by s desc limit 5;
update t set value = value * 2 where id % 3 = 0;
delete from t where id % 5 = 0;
vacuum;
pragma integrity_check;
select a.id, b.id from t a join t b on a.name = b.name and a.id < b.id order by a.id, b.id limit 5;
select length(group_concat(name)) from t;
